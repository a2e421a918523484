package api

import (
	"fmt"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"
)

// settleUsage gives the usage of an answer: the provider's own, with what it left out filled in. true says that it
// had to be estimated.
func settleUsage(provider []byte, prompt, completion int) ([]byte, bool) {
	usage := gjson.ParseBytes(provider)
	if !usage.IsObject() {
		return fmt.Appendf(nil, `{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}`, prompt, completion, prompt+completion), true
	}
	out, estimated := provider, false
	prompt, estimated = settleCount(&out, usage, "prompt_tokens", prompt)
	completion, more := settleCount(&out, usage, "completion_tokens", completion)
	settleCount(&out, usage, "total_tokens", prompt+completion)
	return out, estimated || more
}

// settleCount gives one of the three counts; one that isn't an integer is set to what it should be.
func settleCount(usage *[]byte, have gjson.Result, name string, should int) (count int, set bool) {
	if v := have.Get(name); v.Type == gjson.Number {
		if !strings.ContainsAny(v.Raw, ".eE") {
			return int(v.Num), false
		}
		should = int(v.Num) // 12.0
	} else {
		set = true
	}
	if out, err := sjson.SetBytes(*usage, name, should); err == nil {
		*usage = out
	}
	return should, set
}
