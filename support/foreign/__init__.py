"""Files of strangers: the only reader of their archives, the only remover and the only walkers of their folders.

Content of strangers may be nested deeper than a path can be long, may have folders that cannot be entered, and may
announce sizes that are not there. Nothing here recurses, follows a link of a stranger, or reads without a bound.
"""
