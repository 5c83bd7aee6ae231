"""Workers as processes of the machine: started, supervised, asked for their health."""
