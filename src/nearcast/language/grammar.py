"""The grammar of the one SELECT that asks every kind of question, after STAR's language (STAR §3.1).

It has every clause and any function; which of them have a meaning, the kinds decide (`roles`). Names that only one
place can take (a unit, an attribute, a region) are terminals of their own: the contextual lexer tells them apart by
where they stand, and an error can say what was expected there in plain words.
"""

# fmt: off
RESERVED = (
    "SELECT", "FROM", "WHERE", "AND", "OR", "NOT", "BETWEEN", "IN", "IS", "NULL", "TRUE", "FALSE", "GROUP", "HAVING",
    "ORDER", "LIMIT", "FOR", "SYNC", "WINDOW", "EXPLAIN", "AS",
)
_FREE = (  # also names
    "STREAM", "LOC", "TEXT", "TIME", "INSIDE", "CONTAINS", "OVERLAPS", "AFTER", "BY", "ASC", "DESC", "APPROXIMATE",
)
# fmt: on
KEYWORDS = frozenset((*RESERVED, *_FREE))

_RULES = r"""
start: [EXPLAIN] SELECT [APPROXIMATE] items FROM STREAM [where] clause* ";"*

items: "*" -> everything
     | item ("," item)*
item: operand [AS name]
?operand: call | name
call: NAME "(" [argument ("," argument)*] ")"
?argument: operand | star | number | quantity | string
!star: "*"

where: WHERE predicate (AND predicate)*
?predicate: LOC INSIDE region                     -> inside
          | TEXT (CONTAINS | OVERLAPS) string     -> words
          | TIME AFTER moment                     -> after
          | TIME BETWEEN moment AND moment        -> during
          | attribute COMPARISON value            -> comparison
          | attribute BETWEEN value AND value     -> between
          | attribute IN "(" value ("," value)* ")"      -> in_
          | attribute NOT IN "(" value ("," value)* ")"  -> not_in
          | attribute IS NULL                     -> is_null
          | attribute IS NOT NULL                 -> is_not_null

?region: shape | region_name
shape: REGION "(" [argument ("," argument)*] ")"
region_name: REGION | QUOTED
?moment: string | number
?value: number | string | constant
constant: TRUE | FALSE | NULL

clause: LIMIT number                              -> limit
      | FOR quantity                              -> life
      | ORDER BY order ("," order)*               -> order_by
      | GROUP BY operand ("," operand)*           -> group_by
      | HAVING condition (AND condition)*         -> having
      | SYNC quantity                             -> sync
      | WINDOW quantity                           -> window
order: operand [ASC | DESC]
condition: operand COMPARISON value

number: NUMBER
quantity: NUMBER UNIT
string: STRING
name: NAME | QUOTED
attribute: ATTRIBUTE | QUOTED

COMPARISON: /<>|<=|>=|!=|=|<|>/
%ignore /\s+/
%ignore /--[^\n]*/
"""
STRING = r"""'[^']*+(?:''[^']*+)*+'|"[^"]*+(?:""[^"]*+)*+\""""
QUOTED = "`[^`]++`"
NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"


def _terminals() -> str:
    keywords = [f"{word}.2: /{'(?:time|ts)' if word == 'TIME' else word}\\b/i" for word in (*RESERVED, *_FREE)]
    name = rf"/(?!(?:{'|'.join(RESERVED)})\b)[^\W\d]\w*/i"
    strings = [f"STRING: /{STRING}/", f"QUOTED: /{QUOTED}/", f"NUMBER: /{NUMBER}/"]
    return "\n".join([*strings, *keywords, *(f"{kind}: {name}" for kind in ("NAME", "ATTRIBUTE", "REGION", "UNIT"))])


GRAMMAR = _RULES + _terminals()

# What a terminal is called in 'expected …', in the order of listing; those left out are not offered.
PLAIN_WORDS = {
    "EXPLAIN": "EXPLAIN",
    "SELECT": "SELECT",
    "STAR": "*",
    "LOC": "loc",
    "TEXT": "text",
    "TIME": "time",
    "NAME": "a column's name",
    "ATTRIBUTE": "an attribute's name",
    "REGION": "RECT, CIRCLE, POLYGON or a region's name",
    "AS": "AS",
    "FROM": "FROM",
    "STREAM": "stream",
    "WHERE": "WHERE",
    "INSIDE": "INSIDE",
    "CONTAINS": "CONTAINS",
    "OVERLAPS": "OVERLAPS",
    "AFTER": "AFTER",
    "COMPARISON": "=, <>, <, <=, >, >=",
    "BETWEEN": "BETWEEN",
    "NOT": "NOT",
    "IN": "IN",
    "IS": "IS",
    "NULL": "NULL",
    "NUMBER": "a number",
    "STRING": "a string in quotes",
    "TRUE": "TRUE",
    "FALSE": "FALSE",
    "UNIT": "a unit such as hours or km",
    "AND": "AND",
    "BY": "BY",
    "ASC": "ASC",
    "DESC": "DESC",
    "COMMA": "','",
    "LPAR": "'('",
    "RPAR": "')'",
    "GROUP": "GROUP BY",
    "HAVING": "HAVING",
    "ORDER": "ORDER BY",
    "LIMIT": "LIMIT",
    "FOR": "FOR",
    "SYNC": "SYNC",
    "WINDOW": "WINDOW",
    "$END": "the end",
}
