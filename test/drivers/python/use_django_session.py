# SPDX-License-Identifier: ISC
"""Django with what needs the session: settings that are SET once for each connection, and cursors.

Each thread has a connection of its own, which stays open, and its own tenant and role.
"""

import sys

import django

from django_start import start

start(
    ["django.contrib.sessions", "django.contrib.admin", "django.contrib.messages"],
    {
        "TIME_ZONE": "America/Lima",
        "OPTIONS": {"options": "-c statement_timeout=50s -c lock_timeout=20s"},
    },
    SECRET_KEY="not kept",
)

import threading

from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import DatabaseError, connection, models, transaction
from django.db.backends.signals import connection_created

from check import CLIENTS, check, fails, finish

TURNS = 8
tenants = threading.local()


def prepare_session(connection, **_):
    """What django-tenants and its like do: SET for each new connection."""
    tenant = getattr(tenants, "name", None)
    if tenant:
        with connection.cursor() as cursor:
            cursor.execute(f"SET app.tenant = '{tenant}'")
            cursor.execute("SET ROLE drivers_web")
            cursor.execute(f"SET search_path = {tenant}, public")


connection_created.connect(prepare_session)


class Note(models.Model):
    """A table of the tenant's schema."""

    words = models.CharField(max_length=40)

    class Meta:
        app_label = "notes"


def ask(sql, *values):
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return cursor.fetchone()


def migrates(_):
    call_command("migrate", verbosity=0, interactive=False)
    assert "auth_user" in connection.introspection.table_names()
    for number in range(CLIENTS):
        with connection.cursor() as cursor:
            cursor.execute(f"CREATE SCHEMA t{number}")
            cursor.execute(f"SET search_path = t{number}")
        with connection.schema_editor() as editor:
            editor.create_model(Note)
        with connection.cursor() as cursor:
            cursor.execute(f"GRANT ALL ON SCHEMA t{number} TO drivers_web")
            cursor.execute(f"GRANT ALL ON ALL TABLES IN SCHEMA t{number} TO drivers_web")
            cursor.execute(f"GRANT ALL ON ALL SEQUENCES IN SCHEMA t{number} TO drivers_web")
    with connection.cursor() as cursor:
        cursor.execute("RESET search_path")
        cursor.execute("GRANT SELECT ON auth_user TO drivers_web")
    User.objects.bulk_create(User(username=f"user {i}") for i in range(300))
    connection.close()


def tenant(number):
    """Each transaction finds the tenant, the role and the schema of this connection."""
    tenants.name = f"t{number}"
    for turn in range(TURNS):
        with transaction.atomic():
            row = ask("SELECT current_setting('app.tenant'), current_user, current_schema,"
                      " current_setting('TimeZone'), current_setting('statement_timeout')")
            assert row == (f"t{number}", "drivers_web", f"t{number}", "America/Lima", "50s"), row
        Note.objects.create(words=f"note {number} {turn}")
        fails(DatabaseError, lambda: User.objects.create(username="foreign"))
    assert [note.words for note in Note.objects.order_by("id")] == [
        f"note {number} {turn}" for turn in range(TURNS)
    ]
    connection.close()


def atomic_settings(number):
    """What is SET in a transaction that is rolled back, or for it only, ends with it."""
    for turn in range(TURNS):
        try:
            with transaction.atomic():
                ask("SELECT set_config('app.tenant', %s, false)", f"never {turn}")
                raise KeyError
        except KeyError:
            pass
        assert not ask("SELECT current_setting('app.tenant', true)")[0]
        with transaction.atomic():
            ask("SELECT set_config('app.tenant', %s, true)", f"t{number}")
            assert ask("SHOW app.tenant") == (f"t{number}",)
        assert not ask("SELECT current_setting('app.tenant', true)")[0]
    connection.close()


def cursors(_):
    """Outside of a transaction .iterator() declares a cursor WITH HOLD."""
    for _ in range(2):
        seen = 0
        for user in User.objects.order_by("id").iterator(chunk_size=50):
            seen += 1
            if seen % 100 == 0:
                assert User.objects.filter(id__lte=user.id).count() == seen
        assert seen == 300
    connection.close()


print(f"# Django {django.get_version()}", file=sys.stderr)
check("migrates", migrates, 1)
check("a tenant, a role and a schema of the connection", tenant)
check("settings of a transaction", atomic_settings)
check("cursors that outlive their transaction", cursors)
finish()
