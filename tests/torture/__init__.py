"""The promises under faults: each part tries one of them many times and reports what it saw.

``python -m tests.torture`` runs all parts in full and prints the table; pytest runs each of them in short.
"""
