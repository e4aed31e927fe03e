CREATE INDEX author_name ON author (name);
