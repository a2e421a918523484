package providers

// codeKinds says which kind a provider's code or type names. Keys are as normal writes them. Codes that say too
// little (invalid_request_error, server_error, InvalidParameter) are left out on purpose: text or status decides.
var codeKinds = map[string]Kind{
	"ratelimitexceeded": KindRateLimited, "ratelimiterror": KindRateLimited, "ratelimitreached": KindRateLimited,
	"ratelimitreachederror": KindRateLimited, "toomanyrequests": KindRateLimited, "toomanyrequestserror": KindRateLimited,
	"throttling": KindRateLimited, "throttlingexception": KindRateLimited, "ratequota": KindRateLimited,
	"resourceexhausted": KindRateLimited, "allocationquota": KindRateLimited, "limitrequests": KindRateLimited,
	"burstrate": KindRateLimited, "1302": KindRateLimited, "1303": KindRateLimited,

	"insufficientquota": KindQuota, "creditbalanceexhausted": KindQuota, "organizationspendlimitexceeded": KindQuota,
	"projectspendlimitexceeded": KindQuota, "organizationusagelimitexceeded": KindQuota, "billinghardlimitreached": KindQuota,
	"exceededcurrentquotaerror": KindQuota, "arrearage": KindQuota, "accountoverdueerror": KindQuota, "billingerror": KindQuota,
	"insufficientbalance": KindQuota, "insufficientuserquota": KindQuota, "freetieronly": KindQuota,
	"servicequotaexceededexception": KindQuota, "billingnotactive": KindQuota, "paymentrequired": KindQuota,
	"1113": KindQuota, "1304": KindQuota, "1308": KindQuota, "1309": KindQuota, "1310": KindQuota,

	"invalidapikey": KindAuth, "apikeyinvalid": KindAuth, "authenticationerror": KindAuth, "incorrectapikeyerror": KindAuth,
	"invalidauthenticationerror": KindAuth, "unauthorized": KindAuth, "unauthenticated": KindAuth, "permissiondenied": KindAuth,
	"permissionerror": KindAuth, "permissiondeniederror": KindAuth, "accessdenied": KindAuth, "accessdeniedexception": KindAuth,
	"unrecognizedclientexception": KindAuth, "invalidsignatureexception": KindAuth, "expiredtokenexception": KindAuth,
	"missingauthenticationtokenexception": KindAuth, "incompletesignature": KindAuth, "forbidden": KindAuth,
	"1000": KindAuth, "1001": KindAuth, "1002": KindAuth, "1003": KindAuth, "1004": KindAuth,

	"modelnotfound": KindModelMissing, "modelnotfounderror": KindModelMissing, "deploymentnotfound": KindModelMissing,
	"notfounderror": KindModelMissing, "notfound": KindModelMissing, "modelnotopen": KindModelMissing,
	"closedendpoint": KindModelMissing, "resourcenotfoundexception": KindModelMissing, "unknownmodel": KindModelMissing,
	"resourcenotfounderror": KindModelMissing, "modelnotexist": KindModelMissing, "invalidmodel": KindModelMissing,
	"20012": KindModelMissing, "1211": KindModelMissing,

	"modelnotreadyexception": KindLoading, "modelnotready": KindLoading, "modelloading": KindLoading,

	"overloadederror": KindOverloaded, "overloaded": KindOverloaded, "serveroverloaded": KindOverloaded,
	"engineoverloadederror": KindOverloaded, "engineoverloaded": KindOverloaded, "slowdown": KindOverloaded,
	"serviceunavailable": KindOverloaded, "serviceunavailableexception": KindOverloaded, "serviceunavailableerror": KindOverloaded,
	"modelservingerror":          KindOverloaded,
	"insufficientsystemresource": KindOverloaded, "1305": KindOverloaded, "1312": KindOverloaded,

	"modeltimeoutexception": KindTimeout, "deadlineexceeded": KindTimeout, "timeouterror": KindTimeout,
	"requesttimeout": KindTimeout,

	"internalserverexception": KindServerError, "modelerrorexception": KindServerError,
	"modelstreamerrorexception": KindServerError,

	"contextlengthexceeded": KindContextTooLong, "contextwindowexceeded": KindContextTooLong,
	"contextlengthexceedederror": KindContextTooLong, "exceedcontextsizeerror": KindContextTooLong,
	"toomanytokens": KindContextTooLong, "toomanyprompttokens": KindContextTooLong, "tokenslimitreached": KindContextTooLong,
	"requesttoolarge": KindContextTooLong, "1261": KindContextTooLong,

	"contentfilter": KindContentPolicy, "contentpolicyviolation": KindContentPolicy, "datainspectionfailed": KindContentPolicy,
	"inputtextriskdetection": KindContentPolicy, "outputtextriskdetection": KindContentPolicy,
	"inputtextsensitivecontentdetected": KindContentPolicy, "responsibleaipolicyviolation": KindContentPolicy,
	"moderationblocked": KindContentPolicy, "sensitivecontentdetected": KindContentPolicy, "1301": KindContentPolicy,

	"unsupportedparameter": KindUnsupported, "unsupportedvalue": KindUnsupported, "unknownparameter": KindUnsupported,
	"unsupportedoperation": KindUnsupported, "extraforbidden": KindUnsupported,

	"toolusefailed": KindToolFailed, "malformedtooluse": KindToolFailed,
}

// textKinds are the words, in lower case, that name a kind where codes don't. The first rule that fits counts.
var textKinds = []struct {
	kind  Kind
	words []string
}{
	{KindContextTooLong, []string{
		"maximum context length", "prompt is too long", "context length exceeded", "context_length_exceeded",
		"exceeds the context", "exceed the context", "exceeds the model's context", "exceeded model token limit",
		"input tokens exceeded", "range of input length", "input token count", "too many tokens", "longer than the model's context",
		"longer than the maximum model length", "exceeds the available context size", "exceeded max context length",
		"exceeds the maximum context", "reduce the length of the messages", "input is too long", "context window",
	}},
	{KindContentPolicy, []string{
		"datainspectionfailed", "data_inspection_failed", "inappropriate content", "content management policy",
		"content policy", "safety system", "considered high risk", "sensitive content", "usage polic", "敏感内容",
	}},
	{KindToolFailed, []string{"tool call validation failed", "failed to call a function", "failed to parse tool call"}},
	{KindUnsupported, []string{
		"does not support", "doesn't support", "not support", "unsupported parameter", "unknown parameter",
		"unrecognized request argument", "extra inputs are not permitted", "enable_thinking must", "no endpoints found that",
		"unsupported value",
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
