package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"

	"holdfast/internal/app"
	"holdfast/internal/app/awschain"
	"holdfast/internal/config"
)

// defaultListen is this machine only.
const defaultListen = "127.0.0.1:8080"

// places are where things are: what the environment says, unless a flag of the same name says otherwise.
type places struct {
	config, listen string
	cases          string // file of rule tests, for check
	duration, why  string // of an order, for breaker and cache forget
	app            app.Places
	words          []string        // what stands between the flags
	target         app.CacheTarget // for cache
}

// arguments reads the flags of a command that takes nothing else, out of those that name places. status is the exit
// status where the command ends here: its help was asked for, or it was used wrongly.
func arguments(name string, args []string, env environment, flags ...string) (p places, status int, ok bool) {
	p, status, ok = wordsAndFlags(name, args, env, flags...)
	if ok && len(p.words) > 0 {
		return p, misuse(name, env, fmt.Errorf("unexpected argument %q", p.words[0])), false
	}
	return p, status, ok
}

// wordsAndFlags reads flags and words in any order.
func wordsAndFlags(name string, args []string, env environment, flags ...string) (p places, status int, ok bool) {
	set := flag.NewFlagSet(name, flag.ContinueOnError)
	set.SetOutput(io.Discard)
	p.app.AWS = awschain.Load
	for _, f := range flags {
		into, variable, standard := p.named(f)
		value, given := "", false
		if variable != "" {
			value, given = env.lookup(variable)
		}
		if !given || value == "" {
			value = standard
		}
		set.StringVar(into, f, value, variable)
	}
	for err := set.Parse(args); ; err = set.Parse(set.Args()[1:]) {
		switch {
		case errors.Is(err, flag.ErrHelp):
			c, _ := find(name)
			fmt.Fprint(env.stdout, c.help)
			return p, exitOK, false
		case err != nil:
			return p, misuse(name, env, err), false
		case set.NArg() == 0:
			return p, exitOK, true
		}
		p.words = append(p.words, set.Arg(0))
	}
}

// misuse tells how a command is used.
func misuse(name string, env environment, err error) (status int) {
	c, _ := find(name)
	fmt.Fprintf(env.stderr, "holdfast %s: %v\n\n%s", name, err, c.help)
	return exitRefused
}

// named gives the place of a flag, its environment variable and its default.
func (p *places) named(name string) (into *string, variable, standard string) {
	switch name {
	case "config":
		return &p.config, "HOLDFAST_CONFIG", ""
	case "cases":
		return &p.cases, "", ""
	case "for":
		return &p.duration, "", ""
	case "why":
		return &p.why, "", ""
	case "listen":
		return &p.listen, "HOLDFAST_LISTEN", defaultListen
	case "table":
		return &p.app.Table, "HOLDFAST_TABLE", ""
	case "tenant":
		return &p.target.Tenant, "", ""
	case "user":
		return &p.target.User, "", ""
	case "question":
		return &p.target.Question, "", ""
	case "key":
		return &p.target.Key, "", ""
	case "database-url":
		return &p.app.DatabaseURL, "HOLDFAST_DATABASE_URL", ""
	}
	return &p.app.Keys, "HOLDFAST_KEYS", ""
}

// source is the configuration's place.
func (p places) source(env environment) config.Source {
	keys, _ := env.lookup("HOLDFAST_KEYS") // check has no flag for it
	return config.Source{Location: p.config, Lookup: env.lookup, MoreKeys: p.app.Keys+keys != ""}
}

// logger writes JSON, or text for people at a terminal.
func (e environment) logger() *slog.Logger {
	if f, ok := e.stderr.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			return slog.New(slog.NewTextHandler(f, nil))
		}
	}
	return slog.New(slog.NewJSONHandler(e.stderr, nil))
}
