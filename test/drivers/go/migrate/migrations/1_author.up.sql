CREATE TABLE author (id int PRIMARY KEY, name text);
