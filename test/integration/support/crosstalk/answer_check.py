# SPDX-License-Identifier: ISC
"""Checks that the answers a client receives are its own, to the last byte."""

from support import wire
from support.crosstalk.expected_answers import Fault, done

CANCELED = "57014"
ABORTED = "current transaction is aborted, commands ignored until end of transaction block"


class Wrong(AssertionError):
    """The answer is not that of the client's request."""


class Judge:
    """What one client knows of its session, and therefore the answers that it expects."""

    def __init__(self, number):
        self.number = number
        self.login_number = 0
        self.status = "I"  # of its transaction
        self.told = {}  # its parameters: reported, or asked for
        self.canceled = False  # whether its last request was cancelled
        self.cancels = 0  # how many queries its own cancel requests may still end

    def judge(self, phrase, heard, cut=False):
        """Compare; returns whether the request succeeded, and whether the client's own cancel
        request ended it."""
        answer = [each for each in heard if each.type not in "NSA"]
        wanted = self.wanted(phrase)
        canceled = False
        for place, message in enumerate(answer):
            if place < len(wanted) and self.matches(wanted[place], message):
                continue
            canceled = self.is_our_cancel(answer, place)
            if not canceled:
                expected = wanted[place] if place < len(wanted) else "nothing more"
                raise Wrong(f"heard {message}, not {self.tell(expected)}")
        if len(answer) < len(wanted) and not canceled and not cut:
            raise Wrong(f"did not hear {self.tell(wanted[len(answer)])}")
        self.judge_asides(phrase, heard, canceled or cut or wanted is not phrase.answer)
        failed = canceled or bool(answer) and answer[-1].type == "E"
        return not failed and not cut and wanted is phrase.answer, canceled

    def wanted(self, phrase):
        """The expected answer in the current state of the transaction."""
        if self.status != "E" or phrase.harmless:
            return phrase.answer
        if phrase.ends:
            return [*phrase.answer[:-1], done("ROLLBACK")]
        return [("E", Fault("25P02", ABORTED))]

    def matches(self, wanted, message):
        """Whether the message is this one, byte for byte where that is known."""
        kind, body = wanted
        if kind != message.type:
            return False
        if isinstance(body, Fault):
            fields = wire.read_fields(message.body)
            return fields["C"] == body.sqlstate and body.text in (None, fields["M"])
        return body is None or message.body == self.body(body)

    def body(self, body):
        """The bytes of an expected body."""
        return body(self.told) if callable(body) else body

    def tell(self, wanted):
        """The expected message for error texts."""
        return f"{wanted[0]} {self.body(wanted[1])}" if isinstance(wanted, tuple) else wanted

    def is_our_cancel(self, answer, place):
        """Whether an error that ends the answer was caused by the client's own cancel request."""
        message = answer[place]
        if message.type != "E" or place != len(answer) - 1 or self.cancels == 0:
            return False
        if wire.read_fields(message.body)["C"] != CANCELED:
            return False
        self.cancels -= 1
        return True

    def judge_asides(self, phrase, heard, partly):
        """Notices, parameters and notifications are the client's own too."""
        notices = [wire.read_fields(each.body)["M"] for each in heard if each.type == "N"]
        wanted = list(phrase.notices)
        if notices != (wanted[:len(notices)] if partly else wanted):
            raise Wrong(f"heard notices {notices}, not {wanted}")
        for each in heard:
            if each.type == "S":
                self.judge_parameter(*wire.read_pairs(each.body)[0])
            elif each.type == "A" and wire.text(f"channel{self.number}") not in each.body:
                raise Wrong(f"heard a notification {each.body}")

    def judge_parameter(self, name, value):
        """A reported parameter is the client's own, or the server's default."""
        ours = value in ("", f"{self.number}/{self.login_number}")
        ours = ours or value.startswith(f"c{self.number}.")
        if name == "application_name" and not ours:
            raise Wrong(f"was told an application_name {value}")

    def judge_status(self, phrase, status, well, canceled):
        """The transaction status is what the request has left."""
        if phrase.ends or phrase.begins:
            lawful = "IE" if canceled else "T" if phrase.begins and well else "I"
        elif well or phrase.harmless or self.status == "I":
            lawful = self.status
        else:
            lawful = "E"
        if status not in lawful:
            raise Wrong(f"heard status {status} after {self.status}, not {lawful}")
        self.status = status
