"""The store on Redis: every verb one function of a library that is loaded into the server."""
