"""What each command does, as a function: files are read, packages below called, files written.

Each function is a name of `faircal`, too. They print nothing; what there is to say comes back.
"""
