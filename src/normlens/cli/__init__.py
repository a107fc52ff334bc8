"""The command line: one file per command.

Room: arguments in, text and an exit code out.
"""
