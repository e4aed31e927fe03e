# SPDX-License-Identifier: ISC
"""Django with its defaults: settings of a session, persistent connections, migrations.

Django sets the time zone and, if configured, the isolation level at the start of a session;
transactions are atomic() blocks with savepoints.
"""

import sys

import django

from django_start import start

start([], TIME_ZONE="Europe/Berlin")

from django.contrib.auth.models import Group, User
from django.core.management import call_command
from django.db import DataError, IntegrityError, connection, models, transaction
from django.utils import timezone

from check import check, fails, finish


class Thing(models.Model):
    name = models.CharField(max_length=40, unique=True)
    made = models.DateTimeField(default=timezone.now)
    details = models.JSONField(default=dict)
    amount = models.DecimalField(max_digits=12, decimal_places=2, default=0)

    class Meta:
        app_label = "things"


def migrate(_):
    call_command("migrate", verbosity=0, interactive=False)
    with connection.schema_editor() as editor:
        editor.create_model(Thing)
    assert "things_thing" in connection.introspection.table_names()
    connection.close()


def session(number):
    for _ in range(8):
        with connection.cursor() as cursor:
            cursor.execute("SHOW TimeZone")
            assert cursor.fetchone() == ("UTC",)
            cursor.execute("SELECT %s + 1", [number])
            assert cursor.fetchone() == (number + 1,)
        assert connection.is_usable()


def objects(number):
    group = Group.objects.create(name=f"group {number}")
    for turn in range(8):
        user = User.objects.create_user(f"user {number} {turn}")
        user.groups.add(group)
        thing = Thing.objects.create(name=f"{number} {turn}", details={"turn": turn}, amount=turn)
        assert Thing.objects.get(pk=thing.pk, details__turn=turn).amount == turn
    assert group.user_set.filter(username__startswith="user").count() == 8
    Thing.objects.bulk_create(Thing(name=f"bulk {number} {i}", amount=i) for i in range(500))
    mine = Thing.objects.filter(name__startswith=f"bulk {number} ")
    assert mine.aggregate(models.Sum("amount"))["amount__sum"] == 124750
    assert mine.update(amount=models.F("amount") + 1) == 500
    assert sum(thing.amount for thing in mine.iterator(chunk_size=50)) == 125250
    assert timezone.now() >= mine.latest("made").made


def atomic(number):
    for turn in range(8):
        with transaction.atomic():
            Thing.objects.create(name=f"atomic {number} {turn}")
            with expected(IntegrityError), transaction.atomic():
                Thing.objects.create(name=f"atomic {number} {turn}")
            thing = Thing.objects.select_for_update().get(name=f"atomic {number} {turn}")
            thing.amount = number
            thing.save()
        with expected(KeyError), transaction.atomic():
            Thing.objects.create(name=f"never {number} {turn}")
            raise KeyError
        fails(DataError, lambda: Thing.objects.create(name="x" * 41))
    found = Thing.objects.filter(name__startswith=f"atomic {number}", amount=number)
    assert found.count() == 8
    assert not Thing.objects.filter(name__startswith="never").exists()


class expected:
    """A block that has to end with this exception."""

    def __init__(self, kind):
        self.kind = kind

    def __enter__(self):
        return self

    def __exit__(self, kind, failure, trace):
        assert kind is not None and issubclass(kind, self.kind), kind
        return True


def alters(_):
    """A migration while other clients read, as in a deployment."""
    field = models.CharField(max_length=10, default="new")
    field.set_attributes_from_name("extra")
    before = len(Thing.objects.raw("SELECT * FROM things_thing")[0].__dict__)
    with connection.schema_editor() as editor:
        editor.add_field(Thing, field)
    Thing.add_to_class("extra", models.CharField(max_length=10, default="new"))
    thing = Thing.objects.raw("SELECT * FROM things_thing")[0]
    assert thing.extra == "new" and len(thing.__dict__) == before + 1


print(f"# Django {django.get_version()}", file=sys.stderr)
check("migrates", migrate, 1)
check("a session's settings", session)
check("objects are kept and found", objects)
check("atomic blocks and their failures", atomic)
check("a changed table", alters, 1)
finish()
