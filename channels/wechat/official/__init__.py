"""The WeChat Official Account: the vendor calls us with XML, and the answer travels in the reply or by the customer-service API."""
