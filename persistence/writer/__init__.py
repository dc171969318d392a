"""The writing half of every saver: encoding, the persistence actor and the checkpoint contract over one backend."""
