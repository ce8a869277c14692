"""The toy task domain: say the animal that the task names."""

NAME, VERSION, ANSWER_TEXTS = "toy", 1, (" cat", " dog")


def answers(task):
    return (task["animal"],)


def family(task):
    return task["animal"]


def record_fingerprint(task):
    return f"record {task['task_id']}"


def content_fingerprint(task):
    return f"content {task['task_id']}"


def program_fingerprint(task):
    return f"program {task['task_id']}"


def messages(task, arm):
    return [{"role": "user", "content": f"Say {task['animal']}."}]


def parse(text):
    return text.strip().removeprefix("First: ") or None


def grade(task, parsed):
    return parsed == task["animal"]
