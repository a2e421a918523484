package cache

import (
	"context"
	"hash/fnv"
	"math"
	"strings"
)

// hashedID is the hashed embedder's.
const (
	hashedID   = "hash-512-v1"
	hashedDims = 512
)

// NewHashed makes an embedder that has no data at all: it hashes words, pairs of words, parts of words and runs of Han
// characters to places of a vector. It ranks English candidates as well as a table does. See [thresholds] for what
// its similarity may serve.
func NewHashed() Embedder { return hashed{} }

type hashed struct{}

func (hashed) ID() string { return hashedID }

func (hashed) Embed(_ context.Context, text string) (Vector, error) {
	sum := make([]float32, hashedDims)
	tokens := withoutPauses(tokenize(simplify(fold(text))))
	add := func(kind string, weight float64, parts ...string) {
		h := fnv.New64a()
		_, _ = h.Write([]byte(kind + strings.Join(parts, " "))) // a hash never fails
		bits := h.Sum64()
		if bits>>63 == 1 { // the sign: what falls on one place by chance cancels out
			weight = -weight
		}
		sum[bits%hashedDims] += float32(weight)
	}
	for i, t := range tokens {
		add("w", 1, t)
		if i > 0 {
			add("ww", 1, tokens[i-1:i+1]...)
		}
		if i > 1 && isHan([]rune(t)[0]) {
			add("www", 1, tokens[i-2:i+1]...)
		}
		letters := []rune("^" + t + "$")
		for n := 3; n <= 4; n++ {
			for at := 0; at+n <= len(letters); at++ {
				add("c", 0.5, string(letters[at:at+n]))
			}
		}
	}
	return Vector{Values: unit(sum)}, nil
}

// unit makes a vector's length 1; nil for one without a length.
func unit(v []float32) []float32 {
	var square float64
	for _, x := range v {
		square += float64(x) * float64(x)
	}
	if square == 0 {
		return nil
	}
	length := float32(math.Sqrt(square))
	for i := range v {
		v[i] /= length
	}
	return v
}
