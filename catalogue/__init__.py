"""What may stand in a configuration: the attributes of every built-in model, and one check of a whole document.

The applications share it, so that the machine, the cloud and the commands agree. A driver in `runtime.builtin` reads
the attributes in the module of the same name here.
"""
