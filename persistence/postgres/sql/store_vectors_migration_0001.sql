-- What items are found by: a row for each text of an item, at length one. One table for every number of dimensions.

CREATE EXTENSION IF NOT EXISTS vector;

CREATE TABLE store_vectors (
    item bigint NOT NULL REFERENCES store (id) ON UPDATE CASCADE ON DELETE CASCADE,
    dims integer NOT NULL,
    embedding vector NOT NULL
);

CREATE INDEX store_vectors_item ON store_vectors (item);
