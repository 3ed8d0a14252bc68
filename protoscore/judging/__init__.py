"""Stage: items in, verdicts out. What is asked is a protocol, who answers is a judge, and one strict parser reads the reply."""
