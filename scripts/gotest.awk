# Reads `go test -v ./...`: passes on one line a package, and everything a failed package said. Appends
# "go PASSED FAILED SKIPPED" to the file `counts`. Its exit status says whether all went well.

/^ *--- PASS: / { passed++; next }
/^ *--- FAIL: / { failed++; inside++; failures = failures $0 "\n" }
/^ *--- SKIP: / { skipped++; skips = skips $0 "\n" }
/^=== /         { next }
/^FAIL/         { bad = 1 }

# A package's last line: its output stands together before it.
/^(ok  |\?   |FAIL)\t/ || /^\t.*coverage: / {
	if (/^FAIL/) printf "%s", held
	if (/^FAIL/ && !inside) { # it didn't build, panicked, or left something behind
		failed++
		failures = failures $0 "\n"
	}
	inside = 0
	if (!/^\?/) print
	fflush()
	held = ""
	next
}
# One output line of a test must not fill memory.
length(held) < 4000000 { held = held $0 "\n" }

END {
	if (bad) printf "%s", held
	if (failures != "") printf "failed:\n%s", failures
	if (skips != "") printf "skipped:\n%s", skips
	printf "go %d %d %d\n", passed, failed, skipped >> counts
	exit (bad || passed == 0)
}
