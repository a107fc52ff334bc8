"""A page as a parser sees it."""

from html.parser import HTMLParser

VOID = {"meta", "link", "br", "hr", "img", "input"}


class Reader(HTMLParser):
    """Opens and closes every tag, and remembers ids, references and labels of drawings."""

    def __init__(self, text: str):
        super().__init__()
        self.open, self.ids, self.links, self.labels = [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        facts = dict(attrs)
        self.ids += [facts["id"]] if "id" in facts else []
        self.links += [facts[name] for name in ("href", "src") if name in facts]
        self.labels += [facts["aria-label"]] if tag == "svg" else []
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
