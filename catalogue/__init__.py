"""The attributes of every built-in model, and the check of a whole configuration document. Pure.

The applications share it, so that the machine, the cloud and the commands agree. A driver in `runtime.models` reads
the attributes in the module of the same name here.
"""
