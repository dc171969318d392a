-- The tables of a database, whoever made them.
SELECT name FROM sqlite_schema WHERE type = 'table';
