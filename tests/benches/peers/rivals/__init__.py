"""Rivals in Python, run by `rival.py`."""
