"""Words to functions."""
