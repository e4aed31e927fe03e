DROP TABLE author;
