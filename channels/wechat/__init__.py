"""WeChat in its three forms: the personal bot (`ilink`), the Official Account (`official`), the WeCom AI bot (`wecom`)."""
