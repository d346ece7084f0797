"""Scalar functions without branches and calls, which a compiler turns into vector instructions.

A vector instruction computes with 4 or 8 numbers at once, so a loop can use it only if every number takes the
same path: arithmetic, comparisons that select one of two values, and operations on bits. ``math.exp`` is a
call, one per number. The functions here, exp, log, tanh, sigmoid and erf, use only operations that work on
vectors. `power` makes no call for the usual exponents.

Everything rests on how a number is stored: sign, exponent n plus a bias, mantissa. If you shift n + bias into
its place you get 2**n, and if you shift it back you get n. A number may be so large that its last bit stands
for 1: add it to x, and x is rounded to an integer, which you find in the lowest bits.

Results, denormal ones included, are within 2 units in the last place of the exact value, those of tanh within
2.5 and those of erf within 5; infinities, NaN and the sign of zero are as IEEE 754 has them. A compiler may
fuse ``a * b + c`` but must not reorder sums. The functions also run as plain Python, on NumPy's scalars:
``VECTOR_FORMS["exp"]["float32"](np.float32(1))``.

sin and cos are missing: to reduce a large argument such as 1e300 you need hundreds of digits of pi, too much
work to do for every number. sqrt, abs and comparisons are vector instructions already.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


def polynomial(x, coefficients):
    """The polynomial with these coefficients, the highest power's first (Horner's scheme)."""
    result = coefficients[0]
    for coefficient in coefficients[1:]:
        result = result * x + coefficient
    return result


# Near 0, erf(x) is x times a quotient of polynomials in x**2. Farther off it is 1 - e**(-x**2) times a
# quotient of polynomials in |x|. The coefficients of numerator and denominator are from W. J. Cody, "Rational
# Chebyshev approximations for the error function", Mathematics of Computation 23 (1969).
ERF_BOUND = 0.46875
ERF_ONE = 6.0  # from here on the nearest number to erf is 1
ERF_NEAR = (
    (
        1.85777706184603153e-1,
        3.16112374387056560e0,
        1.13864154151050156e2,
        3.77485237685302021e2,
        3.20937758913846947e3,
    ),
    (1.0, 2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3, 2.84423683343917062e3),
)
ERF_FAR = (
    (
        2.15311535474403846e-8,
        5.64188496988670089e-1,
        8.88314979438837594e0,
        6.61191906371416295e1,
        2.98635138197400131e2,
        8.81952221241769090e2,
        1.71204761263407058e3,
        2.05107837782607147e3,
        1.23033935479799725e3,
    ),
    (
        1.0,
        1.57449261107098347e1,
        1.17693950891312499e2,
        5.37181101862009858e2,
        1.62138957456669019e3,
        3.29079923573345963e3,
        4.36261909014324716e3,
        3.43936767414372164e3,
        1.23033935480374942e3,
    ),
)


def vector_functions(
    real: Any,
    integer: Any,
    exp_range: tuple[float, float],
    ln2: tuple[float, float],
    exp_coefficients: Sequence[float],
    log_coefficients: Sequence[float],
) -> dict[str, Callable]:
    """The functions for one floating-point type.

    The coefficients, the highest power's first, belong to minimax polynomials: among all polynomials of that
    degree, their largest relative error in the end result is the smallest. They were found with the algorithm
    of Remez (1934) in 90 digits.

    Parameters
    ----------
    real, integer : type
        NumPy's type, and its unsigned integers with as many bits.
    exp_range : tuple of two floats
        Below the first e**x is 0, above the second it is infinite.
    ln2 : tuple of two floats
        Their sum is ln 2, to more digits than `real` has. The first has so few that n times it is exact.
    exp_coefficients : sequence of float
        Of (e**r - 1 - r) / r**2, for |r| <= ln(2) / 2.
    log_coefficients : sequence of float
        Of (2 artanh(s) / s - 2) / s**2 in powers of s**2, for |s| <= 0.172.

    Returns
    -------
    dict
        The functions by the names of their rows in the table of scalar functions.
    """
    # Constants of one type: `float32 * 0.5` would be computed in float64, by half as many lanes.
    info = np.finfo(real)
    digits, bias = int(info.nmant), 1 - int(info.minexp)
    minus_one, zero, half, one, two, three = (real(x) for x in (-1, 0, 0.5, 1, 2, 3))
    infinity, nan, smallest_normal = real(np.inf), real(np.nan), real(2.0 ** (1 - bias))
    lowest, highest = (real(x) for x in exp_range)
    ln2_high, ln2_low = (real(x) for x in ln2)
    log2_e = real(np.log2(np.e))
    exp_coefficients = tuple(real(x) for x in exp_coefficients)
    log_coefficients = tuple(real(x) for x in log_coefficients)

    erf_bound, erf_one = real(ERF_BOUND), real(ERF_ONE)
    (near_top, near_bottom), (far_top, far_bottom) = (
        [tuple(real(x) for x in part) for part in quotient] for quotient in (ERF_NEAR, ERF_FAR)
    )

    mantissa, mantissa_mask, one_bit = integer(digits), integer(2**digits - 1), integer(1)
    bias_bits = integer(bias)
    # Added to n, it leaves n + 2 * bias in the lowest bits, for negative n as well.
    rounder = real(1.5 * 2**digits + 2 * bias)
    # The first number whose last bit stands for 1, and its bits; between it and its double, 2**digits + i has
    # the bits of 2**digits with those of i put in.
    unit, unit_bits, unit_and_bias = real(2**digits), real(2**digits).view(integer), real(2**digits + bias)
    scaled_by = real(digits)
    root_bits = real(0.5**0.5).view(integer)
    from_root_to_one = integer(one.view(integer) - root_bits)

    def two_to_the(biased):
        """2**n from an integer whose lowest bits are n + bias."""
        return integer(biased << mantissa).view(real)

    def parts_of_exp(x):
        """The bits of n + 2 * bias, and e**r - 1, for e**x = 2**n * e**r (Cody and Waite, 1980).

        x = n ln 2 + r with |r| <= ln(2) / 2.
        """
        shifted = real(x * log2_e + rounder)
        n = shifted - rounder
        r_high, r_low = x - n * ln2_high, n * ln2_low
        r = r_high - r_low
        return shifted.view(integer), r_high + (r * r * polynomial(r, exp_coefficients) - r_low)

    def exp(x):
        """2**n * (1 + (e**r - 1))."""
        x = min(max(x, lowest), highest)  # in this order of arguments NaN stays NaN
        bits, less_one = parts_of_exp(x)
        # Multiply by 2**n in two steps, because 2**n may be too large or too small to store where e**x is
        # not. Each of two nearly equal parts of n + 2 * bias is an exponent plus a bias.
        some = bits >> one_bit
        return (one + less_one) * two_to_the(some) * two_to_the(bits - some)

    def tanh(x):
        """-m / (2 + m) with the sign of x, where m = e**(-2|x|) - 1 = 2**n * (e**r - 1) + (2**n - 1).

        No digits cancel near 0, because n is 0 there.
        """
        bits, less_one = parts_of_exp(max(-two * abs(x), -scaled_by))  # farther off the nearest number is 1
        power = two_to_the(bits - bias_bits)
        m = power * less_one + (power - one)
        return np.copysign(m / (two + m), x)

    def sigmoid(x):
        """1 / (1 + e**-x), and for negative x e**x / (1 + e**x), so that nothing overflows."""
        e = exp(-abs(x))
        divisor = one + e
        lost = e - (divisor - one)  # what rounding took from the sum (Dekker, 1971)
        y = (e if x < zero else one) / divisor
        return y - y * (lost / divisor)

    def log(x):
        """n ln 2 + ln m, where x = 2**n * m with m between sqrt(1/2) and sqrt(2).

        ln m = 2 artanh(s) with s = f / (2 + f), f = m - 1. Since 2 s = f - s f, that equals f - s (f - R),
        where R = 2 artanh(s) / s - 2 is a polynomial in s**2 (as in FreeBSD's libm).
        """
        is_denormal = x < smallest_normal
        bits = integer(real(x * unit if is_denormal else x).view(integer) + from_root_to_one)
        n = integer((bits >> mantissa) | unit_bits).view(real) - unit_and_bias
        n = n - scaled_by if is_denormal else n
        f = integer((bits & mantissa_mask) + root_bits).view(real) - one
        s = f / (two + f)
        square = s * s
        y = n * ln2_high + (f - (s * (f - square * polynomial(square, log_coefficients)) - n * ln2_low))
        at_most_zero = nan if x < zero else -infinity
        return (y if x > zero else at_most_zero) if x < infinity else x

    def erf(x):
        """2 / sqrt(pi) times the integral of e**(-t**2) from 0 to x (Cody, 1969)."""
        a = min(abs(x), erf_one)  # in this order of arguments NaN stays NaN
        square = a * a
        near = a * (polynomial(square, near_top) / polynomial(square, near_bottom))
        far = one - exp(-square) * (polynomial(a, far_top) / polynomial(a, far_bottom))
        return np.copysign(near if a < erf_bound else far, x)

    def power(x, y):
        """x**y. If y is the same in the whole loop, the compiler picks the branch before the loop begins."""
        if y == two:
            return x * x
        if y == three:
            return x * x * x
        if y == minus_one:
            return one / x
        if y == half:  # the square root, except for -0.0 and -infinity
            return np.sqrt(x + zero) if x != -infinity else infinity
        return x**y

    return {form.__name__: form for form in (exp, log, tanh, sigmoid, erf, power)}


_FLOAT32 = vector_functions(
    np.float32,
    np.uint32,
    exp_range=(-104, 89),
    ln2=(0.693359375, -2.1219444005469057e-4),
    exp_coefficients=(
        1.39460497934923482e-3,
        8.36637397443087517e-3,
        4.166628977055200584e-2,
        1.666654525344936732e-1,
        5.000000058486367215e-1,
    ),
    log_coefficients=(2.986044751190574217e-1, 3.997805119314886367e-1, 6.666677102669688608e-1),
)
_FLOAT64 = vector_functions(
    np.float64,
    np.uint64,
    exp_range=(-746, 710),
    ln2=(6.93147180369123816490e-01, 1.90821492927058770002e-10),
    exp_coefficients=(
        2.092416332040222381e-9,
        2.510869359572381593e-8,
        2.755724382240304662e-7,
        2.755724528024011369e-6,
        2.480158735905630148e-5,
        1.984126988495569927e-4,
        1.388888888886779382e-3,
        8.333333333322149114e-3,
        4.166666666666669875e-2,
        1.666666666666667583e-1,
        4.999999999999999999e-1,
    ),
    log_coefficients=(
        1.477752941704476032e-1,
        1.531603441539583473e-1,
        1.818347988411358914e-1,
        2.222220036825907137e-1,
        2.857142872265359852e-1,
        3.999999999951811039e-1,
        6.666666666666715139e-1,
    ),
)

#: The functions by the names of their rows, then by data type.
VECTOR_FORMS = {name: {"float32": _FLOAT32[name], "float64": _FLOAT64[name]} for name in _FLOAT32}
