package providers

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

// readDocuments gives all documents of a body and the error that ended it.
func readDocuments(r io.Reader) (docs []string, err error) {
	d := newDocuments(r)
	for {
		doc, err := d.next()
		if err != nil {
			return docs, err
		}
		docs = append(docs, string(doc.data))
	}
}

func TestDocuments(t *testing.T) {
	long := `{"a":"` + strings.Repeat("x", 2<<20) + `"}`
	tests := []struct {
		name, body string
		docs       []string
		kind       Kind
	}{
		{"events", "data: {\"a\":1}\r\n\r\n: x\n\ndata:{}\n\n", []string{`{"a":1}`, `{}`}, KindNone},
		{"[DONE]", "data: {}\n\ndata: [DONE]\n\ndata: {}\n\n", []string{`{}`}, KindNone},
		{"half an event", "data: {}\n\ndata: {\"a\"", []string{`{}`}, KindTruncated},
		{"an event that is none", "data: oops\n\n", nil, KindMalformed},
		{"no events", "It works\n", nil, KindMalformed},
		{"an array", "\ufeff [ {} ,\n{\"a\":[1]}]\n", []string{`{}`, `{"a":[1]}`}, KindNone},
		{"a long array", "[" + long + "," + long + "]", []string{long, long}, KindNone},
		{"an array cut behind an element", "[{}", []string{`{}`}, KindTruncated},
		{"an array cut behind a comma", "[{},", []string{`{}`}, KindTruncated},
		{"an array cut in an element", "[{},{\"a\":", []string{`{}`}, KindTruncated},
		{"an array that goes wrong", "[{};{}]", []string{`{}`}, KindMalformed},
		{"an array of strings", `["a"]`, nil, KindMalformed},
		{"an element above the cap", "[{},{\"a\":\"" + strings.Repeat("x", 2*maxEvent) + "\"}]", []string{`{}`}, KindMalformed},
		{"one object", " {\"a\":1}\n", []string{"{\"a\":1}\n"}, KindNone},
		{"half an object", `{"a":1`, nil, KindTruncated},
		{"a page", "<html>", nil, KindMalformed},
		{"nothing", "", nil, KindNone},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			docs, err := readDocuments(strings.NewReader(tt.body))
			require.Len(t, docs, len(tt.docs))
			for i, want := range tt.docs {
				if want != docs[i] { // which may be long
					t.Fatalf("document %d is another", i)
				}
			}
			if tt.kind == KindNone {
				require.Equal(t, io.EOF, err)
				return
			}
			require.Equal(t, tt.kind, AsError(err).Kind, "%v", err)
		})
	}
}

func TestDocumentsPassOnWhyReadingFailed(t *testing.T) {
	cause := &Error{Kind: KindTimeout, Err: errors.New("late")}
	for _, body := range []string{"", "data: {}\n\n", "[", "[{}", "[{},", `[{"a"`, `{"a"`} {
		for _, size := range []bool{false, true} {
			in := io.MultiReader(strings.NewReader(body), iotest.ErrReader(cause))
			if size {
				in = iotest.OneByteReader(in)
			}
			_, err := readDocuments(in)
			require.Equal(t, cause, err, body)
		}
	}
}
