"""What people say about items on the pages: comments, attachments and presence."""
