package cache

import (
	"strings"
	"sync"
)

// likened writes words that mostly mean the same as one. Not sure enough for a key, it is for a question that is similar
// besides and whose answer is labelled.
func likened(f form) form {
	if f.lang == langChinese {
		f.tokens, f.whole = alikeWords().replace(f.tokens), alikeWords().replace(f.whole)
	}
	return f
}

var alikeWords = sync.OnceValue(func() *phraseTable {
	t := newPhraseTable()
	for _, line := range strings.Split(`疼 痛 酸痛
怀孕 孕妇 孕期 怀孕期间
女孩 女生 女孩子 女子
男孩 男生 男孩子 男子
孩子 小孩 小孩子 宝宝 儿童 小朋友 婴儿
老公 丈夫
老婆 妻子 媳妇 太太
爸爸 父亲 老爸
妈妈 母亲 老妈
喜欢 爱 喜爱
好看 漂亮 美丽
申请 注册
丢 掉 弄丢 遗失
坏 坏掉
改 修改 更改 更换 换
删 删除 删掉
装 安装
下载 下
提高 提升
快 快速 迅速 最快
简单 容易
赚钱 挣钱
便宜 实惠
问题 毛病 故障
应用 软件 app 程序
地址 位置
原因 缘故
读 念
讲 说
医 治 医治
晚上 夜里 夜间 晚间
早上 早晨 清晨
里 里面
常 经常 常常 时常
总是 老 一直
每天 天天 每日
减肥 瘦身
痘痘 青春痘 痘
脸上 脸部 面部
牙 牙齿
肚子 腹部
感觉 觉得
帮助 帮忙
开始 起
聊天 交流
作文 文章
图片 照片
电影 影片
手机号 电话
恢复 还原
登录 登陆 登入
关闭 关
打开 开 开启
自己 自个
特别 非常 十分 很 挺
大学 高校
赶快 赶紧 尽快
知道 晓得
给 为
吃 食用
喝 饮用
住 居住
买 选购
贵 昂贵`, "\n") {
		words := strings.Fields(line)
		for _, w := range words[1:] {
			t.add(w, words[0])
		}
	}
	return t
})
