"""What the project needs to build and test itself; never shipped."""
