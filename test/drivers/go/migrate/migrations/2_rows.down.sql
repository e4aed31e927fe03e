DELETE FROM author;
