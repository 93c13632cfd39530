"""The commands in the arguments of `find`."""

from sayso.policy.words.commands.words import Words

_EXECUTES = ("-exec", "-execdir", "-ok", "-okdir")


def split_executed(args: Words) -> tuple[Words, list[Words]]:
    """Return the arguments of `find` itself, and the commands after `-exec` and its like."""
    own: Words = []
    executed: list[Words] = []
    is_inside = False
    for place, word in enumerate(args):
        if is_inside and (word.text == ";" or (word.text == "+" and args[place - 1].text == "{}")):
            is_inside = False
        elif is_inside:
            executed[-1].append(word)
        else:
            own.append(word)
            is_inside = word.text in _EXECUTES
            if is_inside:
                executed.append([])
    return own, [one for one in executed if one]
