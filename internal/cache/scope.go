package cache

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// schema is part of every hash: raising it forgets what was stored under other rules.
const schema = "3"

// Hash is a SHA-256. The zero Hash stands for none.
type Hash [sha256.Size]byte

// hashOf hashes fields so that no two lists of fields have one input: each goes with its length before it.
func hashOf(purpose string, fields ...string) Hash {
	h := sha256.New()
	var length [8]byte
	for _, f := range append([]string{schema, purpose}, fields...) {
		binary.BigEndian.PutUint64(length[:], uint64(len(f)))
		h.Write(length[:])
		h.Write([]byte(f))
	}
	return Hash(h.Sum(nil))
}

// scopeOf hashes what must match exactly before any text is compared. Nothing of it ever goes into a vector.
func scopeOf(s Settings, q Question, lang string) Hash {
	user := q.User
	if s.Shared {
		user = ""
	}
	fields := []string{q.Tenant, user, q.System, compact(q.Tools), compact(q.Format), lang, s.Corpus, s.Generation}
	return hashOf("scope", append(fields, q.Attachments...)...)
}

// frontScope is a scope of its own inside another: answers of one shape.
func frontScope(scope Hash, shape []string) Hash {
	return hashOf("front", append([]string{string(scope[:])}, shape...)...)
}

// tenantKey and userKey say whose an entry is. They are hashed so that the store holds no names.
func tenantKey(tenant string) Hash { return hashOf("tenant", tenant) }

func userKey(tenant, user string) Hash {
	if user == "" {
		return Hash{}
	}
	return hashOf("user", tenant, user)
}

// compact takes the spaces out of JSON, so that the same tools are the same.
func compact(data []byte) string {
	var b bytes.Buffer
	if json.Compact(&b, data) != nil {
		return string(data)
	}
	return b.String()
}

// key is where a question's answer is found, and how much its text may differ from the stored one's.
type key struct {
	Key
	similar bool // standing alone and answered in prose, so that a similar question may be the same
	form    form
}

const (
	maxHistory  = 3       // earlier messages; with more of them only the very same conversation matches
	maxQuestion = 8 << 10 // bytes of a question that is kept
)

// keyOf gives the key of a question.
func keyOf(s Settings, q Question) key {
	f := canonical(q.Text)
	k := key{Key: Key{Tenant: tenantKey(q.Tenant), Scope: scopeOf(s, q, f.lang)}, form: f}
	k.Exact = hashOf("exact", append(turnFields(q.Turns, literalTurn), literal(q.Text))...)
	if f.single() || code(q.Text) || len(q.Turns) > maxHistory {
		return k
	}
	k.Canonical = hashOf("canonical", append(turnFields(q.Turns, canonicalTurn), f.key())...)
	k.similar = len(q.Turns) == 0 && len(q.Attachments) == 0 && len(q.Format) == 0 && !pointsBeyond(q.Text)
	return k
}

// literal is a text as it was written, but for its encoding and the space around it.
func literal(text string) string {
	return strings.TrimSpace(strings.ReplaceAll(norm.NFC.String(text), "\r\n", "\n"))
}

func literalTurn(t Turn) string { return literal(t.Text) }

// canonicalTurn folds what people wrote, as far as a question of theirs would be; what a model or a tool answered must be
// the same.
func canonicalTurn(t Turn) string {
	if f := canonical(t.Text); t.Role == "user" && !f.single() && !code(t.Text) {
		return f.lang + f.key()
	}
	return literal(t.Text)
}

func turnFields(turns []Turn, text func(Turn) string) []string {
	fields := make([]string, 0, 2*len(turns)+1)
	for _, t := range turns {
		fields = append(fields, t.Role, text(t))
	}
	return fields
}
