SET lock_timeout = '20s';
INSERT INTO author VALUES (1, 'one'), (2, 'two');
