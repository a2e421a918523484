package providers

// kindOfCode says which kind a provider's code or type names, KindNone for none. Keys are as normal writes them.
// Codes that say too little (invalid_request_error, server_error, InvalidParameter) are left out on purpose: text or
// status decides.
func kindOfCode(code string) Kind {
	switch code {
	case "ratelimitexceeded", "ratelimiterror", "ratelimitreached", "ratelimitreachederror", "toomanyrequests",
		"toomanyrequestserror", "throttling", "throttlingexception", "ratequota", "resourceexhausted",
		"allocationquota", "limitrequests", "burstrate", "1302", "1303":
		return KindRateLimited
	case "insufficientquota", "creditbalanceexhausted", "organizationspendlimitexceeded",
		"projectspendlimitexceeded", "organizationusagelimitexceeded", "billinghardlimitreached",
		"exceededcurrentquotaerror", "arrearage", "accountoverdueerror", "billingerror", "insufficientbalance",
		"insufficientuserquota", "freetieronly", "servicequotaexceededexception", "billingnotactive",
		"paymentrequired", "1113", "1304", "1308", "1309", "1310":
		return KindQuota
	case "invalidapikey", "apikeyinvalid", "authenticationerror", "incorrectapikeyerror",
		"invalidauthenticationerror", "unauthorized", "unauthenticated", "permissiondenied", "permissionerror",
		"permissiondeniederror", "accessdenied", "accessdeniedexception", "unrecognizedclientexception",
		"invalidsignatureexception", "expiredtokenexception", "missingauthenticationtokenexception",
		"incompletesignature", "forbidden", "failedprecondition", "1000", "1001", "1002", "1003", "1004":
		return KindAuth
	case "modelnotfound", "modelnotfounderror", "deploymentnotfound", "notfounderror", "notfound", "modelnotopen",
		"closedendpoint", "resourcenotfoundexception", "unknownmodel", "resourcenotfounderror", "modelnotexist",
		"invalidmodel", "20012", "1211":
		return KindModelMissing
	case "modelnotreadyexception", "modelnotready", "modelloading":
		return KindLoading
	case "overloadederror", "overloaded", "serveroverloaded", "engineoverloadederror", "engineoverloaded",
		"slowdown", "serviceunavailable", "serviceunavailableexception", "serviceunavailableerror",
		"modelservingerror", "insufficientsystemresource", "1305", "1312":
		return KindOverloaded
	case "modeltimeoutexception", "deadlineexceeded", "timeouterror", "requesttimeout":
		return KindTimeout
	case "internalserverexception", "modelerrorexception", "modelstreamerrorexception", "cancelled":
		return KindServerError
	case "contextlengthexceeded", "contextwindowexceeded", "contextlengthexceedederror", "exceedcontextsizeerror",
		"toomanytokens", "toomanyprompttokens", "tokenslimitreached", "requesttoolarge", "1261":
		return KindContextTooLong
	case "contentfilter", "contentpolicyviolation", "datainspectionfailed", "inputtextriskdetection",
		"outputtextriskdetection", "inputtextsensitivecontentdetected", "responsibleaipolicyviolation",
		"moderationblocked", "sensitivecontentdetected", "1301":
		return KindContentPolicy
	case "unsupportedparameter", "unsupportedvalue", "unknownparameter", "unsupportedoperation", "extraforbidden":
		return KindUnsupported
	case "toolusefailed", "malformedtooluse":
		return KindToolFailed
	}
	return KindNone
}

// textKind is a kind and words, in lower case, that name it.
type textKind struct {
	kind  Kind
	words []string
}

// textKinds are tried where codes name no kind; the first that fits counts.
func textKinds() []textKind {
	return []textKind{
		{KindContextTooLong, []string{
			"maximum context length", "prompt is too long", "context length exceeded", "context_length_exceeded",
			"exceeds the context", "exceed the context", "exceed context limit", "exceeds the model's context", "exceeded model token limit",
			"input tokens exceeded", "range of input length", "input token count", "too many tokens", "longer than the model's context",
			"longer than the maximum model length", "exceeds the available context size", "exceeded max context length",
			"exceeds the maximum context", "reduce the length of the messages", "input is too long", "context window",
		}},
		{KindContentPolicy, []string{
			"datainspectionfailed", "data_inspection_failed", "inappropriate content", "content management policy",
			"content policy", "content filtering policy", "safety system", "considered high risk", "sensitive content", "usage polic", "敏感内容",
		}},
		{KindToolFailed, []string{"tool call validation failed", "failed to call a function", "failed to parse tool call"}},
		{KindUnsupported, []string{
			"does not support", "doesn't support", "not support", "unsupported parameter", "unknown parameter",
			"unrecognized request argument", "extra inputs are not permitted", "enable_thinking must", "no endpoints found that",
			"unsupported value", "is unsupported", "is deprecated for this model", "may only be set to", "cannot both be specified",
			"when thinking is enabled", "may not be enabled", "must be explicitly set to", "compiled grammar",
			"maximum allowed number of output tokens", "supported range", "range of max_tokens",
			"cannot find field", "extraneous key", "the model limit of", "only works in thinking mode", "instruction is not enabled",
		}},
		{KindQuota, []string{
			"credit balance", "insufficient balance", "insufficient account balance", "balance is insufficient", "insufficient credit",
			"exceeded your current quota", "free allocated quota", "more credits", "account is in good standing", "in arrears",
			"overdue", "insufficient funds", "quota has been exhausted", "余额不足", "欠费",
		}},
		{KindAuth, []string{
			"incorrect api key", "invalid api key", "invalid api-key", "api key not valid", "invalid x-api-key",
			"authentication fails", "invalid authentication", "no auth credentials", "api key is invalid",
			"security token included in the request is", "invalid subscription key",
		}},
		{KindModelMissing, []string{
			"model identifier is invalid", "not a valid model", "no such model", "unknown model", "invalid model:",
			"on-demand throughput", "end of its life",
		}},
		{KindLoading, []string{"is loading", "loading model", "currently loading", "is not ready for inference"}},
		{KindRateLimited, []string{
			"rate limit", "rate-limit", "ratelimit", "too many requests", "requests per minute", "tokens per minute", "throttl",
			"rpm limit", "tpm limit", "rph limit",
		}},
		{KindOverloaded, []string{
			"overloaded", "is busy", "too busy", "currently busy", "at capacity", "over capacity", "no available server",
			"high demand", "modelservingerror", "繁忙",
		}},
	}
}
