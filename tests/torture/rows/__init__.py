"""Rows that somebody changed who can write to the database: what reads them, shows them and goes on from them."""
