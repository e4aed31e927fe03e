# SPDX-License-Identifier: ISC
"""Every variable of the container images that --container understands, with what it comes to."""

# Enough of each image's variables for a configuration.
EDOBURU = {"DB_HOST": "db.example", "DB_USER": "app", "DB_PASSWORD": "secret"}
BITNAMI = {"POSTGRESQL_HOST": "db.example", "POSTGRESQL_PASSWORD": "secret"}
CRUNCHY = {"PG_SERVICE": "db.example", "PGBOUNCER_PASSWORD": "secret"}
ZALANDO = {
    "PGHOST": "db.example", "PGPORT": "5432", "PGUSER": "pooler", "PGPASSWORD": "secret",
    "PGSCHEMA": "pooler",
}

# Variable: the others that it stands with, its value, and the lines that it makes in the
# configuration or the auth_file. The variable is looked at alone: without it the lines are absent.
NAMED = {
    # edoburu/pgbouncer
    "DATABASE_URL": ({}, "postgres://u:p%40w@h:5433/d",
                     ["d = host=h port=5433 auth_user=u", '"u" "p@w"', "listen_port = 5432"]),
    "DATABASE_URLS": ({}, "postgres://u:p@h1/a,postgresql://u:p@h2:6,h3:7/b",
                      ["a = auth_user=u host=h1", "b = auth_user=u host=h2,h3 port=6,7", '"u" "p"']),
    "DB_HOST": ({}, "h", ["* = host=h", "listen_port = 5432"]),
    "DB_PORT": (EDOBURU, "5433", ["* = host=db.example port=5433 auth_user=app"]),
    "DB_USER": ({"DB_HOST": "h", "DB_PASSWORD": "pw"}, "bob", ["* = host=h auth_user=bob", '"bob" "pw"']),
    "DB_PASSWORD": ({"DB_HOST": "h", "DB_USER": "bob"}, "p'w\"", ['"bob" "p\'w"""']),
    "DB_NAME": (EDOBURU, "main", ["main = host=db.example auth_user=app"]),
    "CLIENT_ENCODING": (EDOBURU, "UTF8", ["* = host=db.example auth_user=app client_encoding=UTF8"]),
    "POOL_SIZE": (EDOBURU, "7", ["default_pool_size = 7"]),
    "AUTH_FILE": (EDOBURU, "{folder}/mine.txt", ["auth_file = {folder}/mine.txt"]),
    "AUTH_TYPE": (EDOBURU, "scram-sha-256", ["auth_type = scram-sha-256"]),
    "AUTH_USER": (EDOBURU, "finder", ["auth_user = finder", "* = host=db.example"]),
    "AUTH_QUERY": (EDOBURU, "SELECT a, b FROM c($1)", ["auth_query = SELECT a, b FROM c($1)"]),
    "AUTH_DBNAME": (EDOBURU, "auth", ["auth_dbname = auth"]),
    "AUTH_HBA_FILE": (EDOBURU, "/etc/hba", ["auth_hba_file = /etc/hba"]),
    "LISTEN_ADDR": (EDOBURU, "127.0.0.1", ["listen_addr = 127.0.0.1"]),
    "LISTEN_PORT": (EDOBURU, "7000", ["listen_port = 7000"]),
    "UNIX_SOCKET_DIR": (EDOBURU, "/run", ["unix_socket_dir = /run"]),
    "ADMIN_USERS": (EDOBURU, "root, app", ["admin_users = root, app"]),
    "STATS_USERS": (EDOBURU, "stats", ["stats_users = stats"]),
    "IGNORE_STARTUP_PARAMETERS": (EDOBURU, "options", ["ignore_startup_parameters = options"]),
    # bitnami/pgbouncer
    "POSTGRESQL_HOST": ({}, "h", ["* = host=h", "listen_port = 6432", "auth_type = scram-sha-256"]),
    "POSTGRESQL_PORT": (BITNAMI, "5433", ["* = host=db.example port=5433"]),
    "POSTGRESQL_USERNAME": (BITNAMI, "bob", ['"bob" "secret"', "admin_users = bob"]),
    "POSTGRESQL_PASSWORD": ({}, "pw", ["* = host=postgresql", '"postgres" "pw"']),
    "POSTGRESQL_DATABASE": (BITNAMI, "main", ["main = host=db.example"]),
    "PGBOUNCER_DATABASE": ({**BITNAMI, "POSTGRESQL_DATABASE": "main"}, "web",
                           ["web = host=db.example dbname=main"]),
    "PGBOUNCER_PORT": (BITNAMI, "7000", ["listen_port = 7000"]),
    "PGBOUNCER_BIND_ADDRESS": (BITNAMI, "127.0.0.1", ["listen_addr = 127.0.0.1"]),
    "PGBOUNCER_POOL_MODE": (BITNAMI, "transaction", ["pool_mode = transaction"]),
    "PGBOUNCER_AUTH_TYPE": (BITNAMI, "md5", ["auth_type = md5"]),
    "PGBOUNCER_AUTH_USER": (BITNAMI, "finder", ["auth_user = finder"]),
    "PGBOUNCER_AUTH_QUERY": (BITNAMI, "SELECT a, b FROM c($1)", ["auth_query = SELECT a, b FROM c($1)"]),
    "PGBOUNCER_USERLIST": (BITNAMI, '"bob" "pw"\n"eve" "x"', ['"bob" "pw"', '"eve" "x"']),
    "PGBOUNCER_DSN_0": (BITNAMI, "web=host=h2 port=6 dbname=w user=u password='p w'",
                        ["web = host=h2 port=6 dbname=w user=u password='p w'"]),
    "PGBOUNCER_SET_DATABASE_USER": (BITNAMI, "yes", ["* = host=db.example user=postgres"]),
    "PGBOUNCER_SET_DATABASE_PASSWORD": ({**BITNAMI, "PGBOUNCER_SET_DATABASE_USER": "yes"}, "yes",
                                        ["* = host=db.example user=postgres password=secret"]),
    "PGBOUNCER_CONNECT_QUERY": (BITNAMI, "SET a = 'b'",
                                ["* = host=db.example connect_query='SET a = ''b'''"]),
    "PGBOUNCER_SOCKET_DIR": (BITNAMI, "/run", ["unix_socket_dir = /run"]),
    "PGBOUNCER_SOCKET_MODE": (BITNAMI, "0700", ["unix_socket_mode = 0700"]),
    "PGBOUNCER_SOCKET_GROUP": (BITNAMI, "users", ["unix_socket_group = users"]),
    "PGBOUNCER_DAEMON_USER": (BITNAMI, "nobody", ["user = nobody"]),
    # Crunchy's container
    "PG_SERVICE": ({}, "h", ["* = host=h auth_user=pgbouncer", "listen_port = 5432"]),
    "PGBOUNCER_PASSWORD": ({"PG_SERVICE": "h"}, "pw", ['"pgbouncer" "pw"']),
    "DEFAULT_POOL_SIZE": (CRUNCHY, "7", ["default_pool_size = 7"]),
    "MAX_CLIENT_CONN": (CRUNCHY, "7", ["max_client_conn = 7"]),
    "MAX_DB_CONNECTIONS": (CRUNCHY, "7", ["max_db_connections = 7"]),
    "MIN_POOL_SIZE": (CRUNCHY, "7", ["min_pool_size = 7"]),
    "POOL_MODE": (CRUNCHY, "statement", ["pool_mode = statement"]),
    "RESERVE_POOL_SIZE": (CRUNCHY, "7", ["reserve_pool_size = 7"]),
    "RESERVE_POOL_TIMEOUT": (CRUNCHY, "7", ["reserve_pool_timeout = 7"]),
    # Zalando's operator
    "PGHOST": ({}, "h", ["* = host=h", "postgres = host=h", "listen_port = 5432"]),
    "PGPORT": ({"PGHOST": "h"}, "5433", ["* = host=h port=5433", "postgres = host=h port=5433"]),
    "PGUSER": ({"PGHOST": "h", "PGPASSWORD": "pw"}, "pooler",
               ["* = host=h auth_user=pooler", "postgres = host=h auth_user=pooler", '"pooler" "pw"']),
    "PGPASSWORD": ({"PGHOST": "h", "PGUSER": "pooler"}, "pw", ['"pooler" "pw"']),
    "PGSCHEMA": ({"PGHOST": "h", "PGUSER": "pooler"}, "pooler",
                 ["auth_query = SELECT * FROM pooler.user_lookup($1)"]),
    "CONNECTION_POOLER_PORT": (ZALANDO, "7000", ["listen_port = 7000"]),
    "CONNECTION_POOLER_MODE": (ZALANDO, "transaction", ["pool_mode = transaction"]),
    "CONNECTION_POOLER_DEFAULT_SIZE": (ZALANDO, "7", ["default_pool_size = 7"]),
    "CONNECTION_POOLER_MIN_SIZE": (ZALANDO, "7", ["min_pool_size = 7"]),
    "CONNECTION_POOLER_RESERVE_SIZE": (ZALANDO, "7", ["reserve_pool_size = 7"]),
    "CONNECTION_POOLER_MAX_CLIENT_CONN": (ZALANDO, "7", ["max_client_conn = 7"]),
    "CONNECTION_POOLER_MAX_DB_CONN": (ZALANDO, "7", ["max_db_connections = 7"]),
    "CONNECTION_POOLER_CLIENT_TLS_CRT": (ZALANDO, "/tls/crt",
                                         ["client_tls_cert_file = /tls/crt", "client_tls_sslmode = require"]),
    "CONNECTION_POOLER_CLIENT_TLS_KEY": (ZALANDO, "/tls/key", ["client_tls_key_file = /tls/key"]),
    "CONNECTION_POOLER_CLIENT_CA_FILE": (ZALANDO, "/tls/ca", ["client_tls_ca_file = /tls/ca"]),
    "INFRASTRUCTURE_ROLES": (ZALANDO, "robot_a,robot_b", ["stats_users = robot_a,robot_b"]),
}

# Variables that make no line: a test of its own is about each.
OTHERS = {
    "PGBOUNCER_EXTRA_FLAGS", "PGBOUNCER_DAEMON_GROUP", "PGBOUNCER_FORCE_INITSCRIPTS",
    "PGUSHER_CONFIG_FOLDER", "PGUSHER_PRESETS",
}
