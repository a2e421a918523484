package config

import (
	"context"
	"crypto/sha256"
	"time"
)

// settled is how long a file must have been left alone before a change of it is taken: it may still be written.
const settled = 300 * time.Millisecond

// Feed reads one source again and again, and gives what is new. Not for concurrent use.
type Feed struct {
	source  Source
	seen    [sha256.Size]byte // hash of the content that was given or refused last; zero: none yet
	etag    string            // of that content; "" where the server gave none
	trouble string            // why the last reading failed; "" if it didn't
}

// NewFeed makes a feed that has read nothing yet.
func NewFeed(s Source) *Feed { return &Feed{source: s} }

// File says that the source is a file: reading it again is cheap.
func (f *Feed) File() bool { return f.source.Location != "" && !f.source.remote() }

// Unread says that the last reading failed: nothing is known of the content.
func (f *Feed) Unread() bool { return f.trouble != "" }

// Next reads the source, and gives the configuration if the content is another than the last time. It gives nothing
// at all where nothing is new. A content that is refused, and a reading that fails, are told once, as [Load] does:
// until they change they are nothing new either, but for failures before anything was read. Values of the environment
// are looked up anew, but don't make a content new.
func (f *Feed) Next(ctx context.Context) (*Config, []Warning, error) {
	first := f.seen == [sha256.Size]byte{}
	got, err := f.source.read(ctx, f.etag)
	if err != nil {
		if f.trouble == err.Error() && !first {
			return nil, nil, nil
		}
		f.trouble = err.Error()
		return nil, nil, Errors{{File: f.source.name(), Reason: f.trouble}}
	}
	f.trouble = ""
	if got.unchanged || !first && got.unsettled() {
		return nil, nil, nil
	}
	sum := sha256.Sum256(got.data)
	f.etag = got.etag
	if sum == f.seen {
		return nil, nil, nil
	}
	f.seen = sum
	c, warnings, err := f.source.parse(f.source.name(), got.data)
	if c != nil {
		c.Embedded = f.source.Location == ""
	}
	return c, warnings, err
}

// reading is what one look at a source gave.
type reading struct {
	data      []byte
	etag      string    // "" where there is none
	unchanged bool      // the content is the one of the ETag that was sent along; data is nil
	written   time.Time // of a file: when it was last changed; else zero
}

// unsettled says that somebody may still be writing. A time to come is another machine's, and says nothing.
func (r reading) unsettled() bool {
	age := time.Since(r.written)
	return age >= 0 && age < settled
}
