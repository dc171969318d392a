"""List-append in the manner of Jepsen: clients append numbers to threads, log what they hear, and a model judges it.

Every number is unique, so its place in a thread's list tells when it was appended, how often, and on which branch.
"""
