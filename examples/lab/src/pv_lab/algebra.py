"""Linear forms `a x + b` and the operations of a chain; their text is one word per number.

Form(2, 7)   "2x +7"        Form(0, -3)   "-3"
Op("times", 3) "times 3"    Op("minus", 4, of_x=True) "minus 4x"
"""

from dataclasses import dataclass

__all__ = ["MAX_COEFFICIENT", "MAX_CONSTANT", "OP_KINDS", "Form", "Op"]

MAX_CONSTANT = 99
"""Largest magnitude of a constant that has a word."""

MAX_COEFFICIENT = 20
"""Largest magnitude of a coefficient of x that has a word."""

OP_KINDS = ("plus", "minus", "times")


@dataclass(frozen=True)
class Form:
    """The value `coefficient * x + constant`; arithmetic is the case `coefficient == 0`."""

    coefficient: int
    constant: int

    def __str__(self) -> str:
        head = f"{self.coefficient}x " if self.coefficient else ""
        return f"{head}{self.constant:+d}"

    def fits(self, max_coefficient: int = MAX_COEFFICIENT, max_constant: int = MAX_CONSTANT) -> bool:
        """True if both numbers are within the given magnitudes."""
        return abs(self.coefficient) <= max_coefficient and abs(self.constant) <= max_constant


@dataclass(frozen=True)
class Op:
    """One operation on a form: add or subtract a constant or a multiple of x, or multiply (distribute)."""

    kind: str
    operand: int
    of_x: bool = False

    def __str__(self) -> str:
        return f"{self.kind} {self.operand}{'x' if self.of_x else ''}"

    def apply(self, form: Form) -> Form:
        """The right result of this operation on `form`. All operations are injective (no `times 0`)."""
        if self.kind == "times":
            return Form(form.coefficient * self.operand, form.constant * self.operand)
        amount = self.operand if self.kind == "plus" else -self.operand
        if self.of_x:
            return Form(form.coefficient + amount, form.constant)
        return Form(form.coefficient, form.constant + amount)
