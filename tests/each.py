"""One test for many cheap cases. A separate test takes 5 ms, and every worker collects it."""

import functools
import inspect


def each(names, cases, *, ids=str):
    """Decorate a test as `parametrize` does, but call it with all cases in one test and name those that fail."""
    names, cases = names.split(", "), list(cases)

    def decorate(test):
        @functools.wraps(test)
        def tried(**fixtures):
            failed = []
            for case in cases:
                given = dict(zip(names, case if len(names) > 1 else (case,), strict=True))
                try:
                    test(**fixtures, **given)
                except Exception as error:
                    error.add_note(f"{', '.join(names)}: {ids(case)}")
                    failed.append(error)
            if failed:
                named = "; ".join(error.__notes__[-1] for error in failed[:NAMED])
                raise ExceptionGroup(f"{len(failed)} of {len(cases)} fail: {named}", failed)

        signature = inspect.signature(test)
        kept = [parameter for parameter in signature.parameters.values() if parameter.name not in names]
        tried.__signature__ = signature.replace(parameters=kept)
        return tried

    return decorate


NAMED = 20
"""The number of failed cases that the first line names. All of them follow below."""
