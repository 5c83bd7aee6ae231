"""The fastest loops we can write straight on the drivers: no fence, no lease, no retries, the same durability.

Jobs have the columns, the width and the claim index that matter for speed. Each handler call is one task of
the event loop, and notes its number, as Duetime's handlers do.
"""
