"""What judges are asked about ProtoBias pictures: one module a protocol, its prompts beside it."""
