# SPDX-License-Identifier: ISC
"""Checks that the answers a client receives are its own, to the last byte."""

from support import wire
from support.crosstalk.expected_answers import Fault, done

CANCELED = "57014"
ABORTED = "current transaction is aborted, commands ignored until end of transaction block"


class WrongAnswer(AssertionError):
    """The answer is not that of the client's request."""


class AnswerCheck:
    """What one client knows of its session, and therefore the answers that it expects."""

    def __init__(self, number):
        self.number = number
        self.login_number = 0
        self.status = "I"  # of its transaction
        self.parameters = {}  # its parameters: reported, or asked for
        self.canceled = False  # whether its last request was cancelled
        self.cancels = 0  # how many queries its own cancel requests may still end

    def check(self, request, received, cut=False):
        """Compare; returns whether the request succeeded, and whether the client's own cancel
        request ended it."""
        answer = [each for each in received if each.type not in "NSA"]
        wanted = self.wanted(request)
        canceled = False
        for place, message in enumerate(answer):
            if place < len(wanted) and self.matches(wanted[place], message):
                continue
            canceled = self.is_own_cancel(answer, place)
            if not canceled:
                expected = wanted[place] if place < len(wanted) else "nothing more"
                raise WrongAnswer(f"received {message}, not {self.tell(expected)}")
        if len(answer) < len(wanted) and not canceled and not cut:
            raise WrongAnswer(f"did not receive {self.tell(wanted[len(answer)])}")
        self.check_other_messages(request, received, canceled or cut or wanted is not request.answer)
        failed = canceled or bool(answer) and answer[-1].type == "E"
        return not failed and not cut and wanted is request.answer, canceled

    def wanted(self, request):
        """The expected answer in the current state of the transaction."""
        if self.status != "E" or request.harmless:
            return request.answer
        if request.ends:
            return [*request.answer[:-1], done("ROLLBACK")]
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
        return body(self.parameters) if callable(body) else body

    def tell(self, wanted):
        """The expected message for error texts."""
        return f"{wanted[0]} {self.body(wanted[1])}" if isinstance(wanted, tuple) else wanted

    def is_own_cancel(self, answer, place):
        """Whether an error that ends the answer was caused by the client's own cancel request."""
        message = answer[place]
        if message.type != "E" or place != len(answer) - 1 or self.cancels == 0:
            return False
        if wire.read_fields(message.body)["C"] != CANCELED:
            return False
        self.cancels -= 1
        return True

    def check_other_messages(self, request, received, partly):
        """Notices, parameters and notifications are the client's own too."""
        notices = [wire.read_fields(each.body)["M"] for each in received if each.type == "N"]
        wanted = list(request.notices)
        if notices != (wanted[:len(notices)] if partly else wanted):
            raise WrongAnswer(f"received notices {notices}, not {wanted}")
        for each in received:
            if each.type == "S":
                self.check_parameter(*wire.read_pairs(each.body)[0])
            elif each.type == "A" and wire.text(f"channel{self.number}") not in each.body:
                raise WrongAnswer(f"received a notification {each.body}")

    def check_parameter(self, name, value):
        """A reported parameter is the client's own, or the server's default."""
        ours = value in ("", f"{self.number}/{self.login_number}")
        ours = ours or value.startswith(f"c{self.number}.")
        if name == "application_name" and not ours:
            raise WrongAnswer(f"got an application_name {value}")

    def check_status(self, request, status, well, canceled):
        """The transaction status is what the request has left."""
        if request.ends or request.begins:
            lawful = "IE" if canceled else "T" if request.begins and well else "I"
        elif well or request.harmless or self.status == "I":
            lawful = self.status
        else:
            lawful = "E"
        if status not in lawful:
            raise WrongAnswer(f"received status {status} after {self.status}, not {lawful}")
        self.status = status
