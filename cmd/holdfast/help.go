package main

import (
	"fmt"
	"slices"
	"strings"
)

const placesHelp = `
  --config PATH|URL    HOLDFAST_CONFIG        the configuration; without it the embedded one
  --listen HOST:PORT   HOLDFAST_LISTEN        where to listen; 127.0.0.1:8080
  --table NAME         HOLDFAST_TABLE         DynamoDB table of breakers and caps; without it in memory
  --database-url URL   HOLDFAST_DATABASE_URL  Postgres of the cache; without it in memory
  --keys LIST          HOLDFAST_KEYS          more callers' keys: tenant:sha256,tenant:sha256
`

const serveHelp = `usage: holdfast serve [flags]

Serves POST /v1/chat/completions, GET /v1/models, /v1/status and /healthz. Without a configuration and without a
provider's key it answers with scripted models, on this machine only. A changed configuration is taken while serving; one
that isn't right is refused in the log, and the old one serves on. SIGTERM and SIGINT let running answers end.

Flags win over the environment:
` + placesHelp

const checkHelp = `usage: holdfast check [--config PATH|URL] [--cases FILE]

Reads a configuration (else HOLDFAST_CONFIG, else the embedded one) as serve would, without starting anything. Shows the
candidates in the order they are asked, the chains, and what is doubtful. A configuration that isn't right: exit
status 2, and each reason with file and line.

--cases names a file of rule tests: what a request is, and the rule and the first candidates it must get. One that
doesn't hold: exit status 1.

  cases:
    - {name: long, request: {tokens: 40000, tenant: team-a}, want: {rule: long, candidates: [large-context]}}
`

const breakerHelp = `usage: holdfast breaker [list [CANDIDATE …]]
       holdfast breaker open  CANDIDATE [--for 10m] [--why TEXT]
       holdfast breaker close CANDIDATE [--for 10m] [--why TEXT]
       holdfast breaker reset CANDIDATE [--why TEXT]

Shows and forces the breakers of the fleet that shares a table. open: no call goes to the candidate; close: every call
does, whatever fails; for the time that --for says (1s to 720h), else until the next word. reset: the breaker is closed,
and works as it always does. Every serving process sees it within 5 s. --why (one short line) stands in
/v1/status and here; it is no place for secrets.

  --table NAME         HOLDFAST_TABLE         the fleet's table; needed
  --config PATH|URL    HOLDFAST_CONFIG        the configuration that says which candidates there are; without it any
                                              id is taken, and list wants ids

Needs AWS credentials that may read and update the breakers' items: those of the deployed stack's role
BreakerOperatorArn. Exit status 0: done; 1: the table can't be reached, or refuses; 2: wrong use, nothing was changed.
`

const migrateHelp = `usage: holdfast migrate [--database-url URL] [--table NAME]

Applies the migrations to the database (HOLDFAST_DATABASE_URL) and, on an endpoint that isn't AWS, creates the table
(HOLDFAST_TABLE). Needs no configuration. May be repeated, and run while others serve. Exit status 1: not done.
`

const cacheHelp = `usage: holdfast cache purge --tenant NAME [--user U] [--question TEXT | --key HEX] [--database-url URL]
       holdfast cache forget --tenant NAME (--question TEXT | --key HEX) [--for 720h] [--database-url URL]

purge deletes answers from the cache's database: all of a tenant, or those that a user asked
for (what callers send as user), or those to a question. Running processes serve none of them any more; what they are
answering just now may be stored after it. They may all be stored again.

forget deletes the answers to a question and lays a tombstone: until the time is over nobody of the tenant gets an
answer to it from the cache, and none is stored.

--question means the question where it stands alone, in all the ways of writing that the cache takes for the same.
--key names an entry by cache.key of the log, also within a conversation. --for is 720h unless it is said.

  --database-url URL   HOLDFAST_DATABASE_URL  the cache's database; needed

Exit status 0: done; 1: the database can't be reached, or refuses; 2: wrong use, nothing was deleted.
`

const versionHelp = `usage: holdfast version

Prints the version.
`

// usage is the help of holdfast as a whole.
func usage() string {
	var b strings.Builder
	b.WriteString("Holdfast is a chat endpoint that keeps answering.\n\nusage: holdfast COMMAND [flags]\n\n")
	for _, c := range commands() {
		fmt.Fprintf(&b, "  %-9s %s\n", c.name, c.line)
	}
	b.WriteString("\nholdfast help COMMAND tells more. Flags, or the environment:\n" + placesHelp)
	return b.String()
}

// isHelp says whether a word asks for help.
func isHelp(word string) bool {
	return slices.Contains([]string{"help", "-h", "-help", "--help"}, word)
}

// runHelp prints the help of one command, or of all.
func runHelp(args []string, env environment) int {
	if len(args) == 0 || isHelp(args[0]) {
		fmt.Fprint(env.stdout, usage())
		return exitOK
	}
	c, ok := find(args[0])
	if !ok {
		fmt.Fprintf(env.stderr, "holdfast: there is no command %q\n\n%s", args[0], usage())
		return exitRefused
	}
	fmt.Fprint(env.stdout, c.help)
	return exitOK
}
