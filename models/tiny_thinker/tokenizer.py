"""The tokenizer of the tiny thinker: byte-level BPE over the words of its prompts and the integers -99 to 99."""

# mypy: allow-untyped-calls
# (transformers is only partly typed)

from collections.abc import Iterable

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

MODEL_EOS = "<|endoftext|>"
TOKENIZER_EOS = "<|im_end|>"
MESSAGE_START = "<|im_start|>"
THINK_OPEN, THINK_CLOSE = "<think>", "</think>"

MAX_VOCABULARY = 1024
CONTEXT_TOKENS = 2048

# Numbers keep their sign and one leading space, words a trailing number and colon: " -12", " ADD1", "in:" and "First:"
# become one token.
_WORDS = r" ?-?\d+| ?[A-Za-z]+\d*:?|\n+| ?[^\sA-Za-z\d]+|\s+"

# The generation prompt opens the thinking channel, so a rendered prompt holds one <think> and no </think>.
CHAT_TEMPLATE = (
    "{%- for message in messages %}"
    "{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}"
    "{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n<think>\\n' }}{%- endif %}"
)


def train_tokenizer(texts: Iterable[str]) -> PreTrainedTokenizerFast:
    """Learn the merges from `texts` and every integer in -99..99, each with and without a leading space."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_WORDS), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=MAX_VOCABULARY,
        min_frequency=2,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=[MODEL_EOS, MESSAGE_START, TOKENIZER_EOS],
        show_progress=False,
    )
    # Small integers are listed more often than anything else is likely to occur, so that their merges come first.
    integers = [f" {value}" for value in range(-99, 100)]
    tokenizer.train_from_iterator([*texts, *(integers * 10_000)], trainer)
    # As in the Qwen family the thinking tags are single ids but survive decoding without special tokens.
    tokenizer.add_tokens([THINK_OPEN, THINK_CLOSE])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=TOKENIZER_EOS,
        pad_token=MODEL_EOS,
        model_max_length=CONTEXT_TOKENS,
        clean_up_tokenization_spaces=False,
        chat_template=CHAT_TEMPLATE,
    )
