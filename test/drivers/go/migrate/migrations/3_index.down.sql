DROP INDEX author_name;
