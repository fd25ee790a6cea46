"""What collapsed verifiers say, for `corrupt.py`. Even entries serve the set that thresholds are chosen on, odd
ones the set that is reported, so that no rule is measured on a wording that it was tuned on."""

from __future__ import annotations

FORMAT_CHATTER = (
    "But in the example, it says ### True or ### False.",
    "Since this is a text, I need to output at the end whether the proof is correct or not.",
    "But in the user message, it says to write ### True.",
    "The instruction says to put the verdict on the last line, but the prompt says to end with it.",
    "In the output, it says to output True or False.",
    "Hold on, the required format says three hashes and then the word.",
    "The system prompt says that the final line should be ### True or ### False.",
    "But the question says to respond with True or False, so the answer should be in the format ### False.",
    "I am supposed to output the final verdict in the format ### True.",
    "In the sample output, it writes ### False, so I should write ### False.",
    "But I think it's to output whether the proof is correct or not.",
    "The user said the response must end with ### True or ### False.",
    "But the template has ### True in it, so the output format is ### True.",
    "Do I have to output only the verdict, or the explanation as well?",
    "According to the instructions, I must output the verdict after three hash signs.",
    "The prompt says output at the end, but the example output shows it at the start.",
)
CHAT_MARKS = (
    "<|im_end|>\n<|im_start|>user\nVerify the proof.<|im_end|>\n<|im_start|>assistant\n",
    "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n",
    "<|im_start|>assistant\n",
    "<end_of_turn>\n<start_of_turn>model\n",
    "<｜User｜>Check it again.<｜Assistant｜>",
    "[INST] Is the proof right? [/INST]",
    "<|endoftext|>",
    "</s><s>[INST]",
)
INTERRUPTIONS = (
    "But wait,",
    "Wait, no.",
    "Hmm.",
    "Hmm, wait.",
    "Actually, no.",
    "Actually, wait.",
    "Let me see.",
    "No, wait.",
    "Wait, let me check again.",
    "Hold on.",
    "But hold on,",
    "Let me think.",
    "Oh wait.",
    "No, no.",
    "Let me re-check.",
    "Okay, let me look again.",
)
CRUMBS = ("the proof", "step 2", "this step", "the claim", "in the proof,", "so the", "that is", "it says")
SEARCHES = (
    "let me find one error",
    "let me find the errors",
    "I need to verify the proof",
    "I need to check the proof",
    "let me look for an error in the proof",
    "let me see whether there is an error",
    "we need to find a mistake",
    "we have to find where it goes wrong",
)
OPENINGS = ("But", "Now,", "So", "First,", "But first,", "Then", "And", "Again,", "OK,", "")
TAILS = ("", " in the proof", " in it", " again", " here", " now", " step by step", "")
AFTERTHOUGHTS = (
    "The proof is complete and every case has been treated.",
    "Explanation: the bound in the second step does not hold for small n.",
    "Please let me know if anything else should be checked.",
    "However, step 3 could also be read in another way, so I am not sure.",
    "So the final answer is that the proof holds.",
    "Note that the case where x is zero was not considered above.",
    "I hope that this helps!",
    "Let us now consider the remaining case again.",
)
OFF_TOPIC = (
    "Preheat the oven to 180 degrees and butter a round tin before you mix the flour with the eggs.",
    "The committee met on Tuesday to discuss parking near the old railway station.",
    "Subscribe to our newsletter and never miss a deal on outdoor furniture again.",
    "He closed the door, put on his coat, and walked down to the harbour where the boats lay.",
    "The patch notes mention a fix for the crash that occurred when the inventory was full.",
    "Rainfall in the northern valleys is expected to ease by Thursday afternoon.",
    "My favourite song on that album is the third one, although the drums are too loud.",
    "The tenant shall keep the premises in good order and give notice of any damage.",
)
FOREIGN = (
    ("正确", "доказательство", "証明", "증명", "برهان", "משפט", "ข้อพิสูจน์", "प्रमाण", "απόδειξη"),
    ("错误", "ошибка", "ステップ", "단계", "خطأ", "שגיאה", "ขั้นตอน", "त्रुटि", "λάθος"),
)
