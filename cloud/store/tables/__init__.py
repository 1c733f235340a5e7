"""The tables, a file for each room: a step that is carried out once. One that was released is never changed."""
