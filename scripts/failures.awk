# Prints of a log of "go test -v" what the tests that failed have written: of each
# its first and its last lines, of all together at most as many as a person reads.
# A line belongs to the test that the last line with === names.
BEGIN { head = 25; most = 60; all = 400 }

function keep(test, line,   n) {
  if (!(test in lines)) { lines[test] = 0; order[++tests] = test }
  n = ++lines[test]
  text[test, n <= head ? n : head + (n - head - 1) % (most - head) + 1] = substr(line, 1, 1000)
}

function show(test,   i, n) {
  n = lines[test]
  if (printed >= all) { left++; return }
  print "--- " (test == "" ? "outside of any test" : test) ", " package ":"
  for (i = 1; i <= n && i <= head; i++) put(text[test, i])
  if (n > most) put("    ... " n - most " lines")
  for (i = n > most ? n - (most - head) + 1 : head + 1; i <= n; i++) put(text[test, head + (i - head - 1) % (most - head) + 1])
}

function put(line) { if (printed++ < all) print line }

function ended(   i, any) {
  for (i = 1; i <= tests; i++) if (order[i] in failed) { show(order[i]); any = 1 }
  for (i in broken) if (bad || i == "the build") { show(i); any = 1 }
  if (!any && bad && "" in lines) show("")
  split("", lines); split("", order); split("", text); split("", failed); split("", broken)
  tests = 0; test = ""
}

/^=== (RUN|CONT|NAME|PAUSE) / { test = $3; next }
/^ *--- (PASS|SKIP|FAIL): / { if ($2 == "FAIL:") { failed[$3]; if (!($3 in lines)) { lines[$3] = 0; order[++tests] = $3 } }; next }
/^(ok  |FAIL|\?   )\t/ { package = $2; bad = $1 == "FAIL"; if (bad && !/s$/) keep(test, $0); ended(); next }
/^# / && test == "" { test = "the build"; broken[test] } # else a test printed it
/^(panic|fatal error): / { test = "a panic"; broken[test] }
/^(PASS|FAIL|exit status .*)$/ { next }
{ keep(test, $0) }
END { ended(); if (left) print "... and of " left " more tests" }
